"""Telling people what follows from the books: a job, and the sensor that asks for it."""
