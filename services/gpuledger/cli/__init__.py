"""The gpuledger command."""
