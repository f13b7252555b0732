"""What gates found, kept and shown: results in a folder, and Data Docs made of them."""
