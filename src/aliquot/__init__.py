"""Aliquot shares GPUs: it cuts them into shares and holds every tenant to its share."""

__version__ = "0.1.0"
