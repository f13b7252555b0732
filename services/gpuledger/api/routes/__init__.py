"""The paths of the API, a module per subject; each builds its router from the context."""
