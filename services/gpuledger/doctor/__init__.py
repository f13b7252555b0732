"""What is wrong with an installation: each link of the chain from source to report is looked at, and a remedy named."""
