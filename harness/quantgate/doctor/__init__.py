"""What this machine has of all that quantgate needs or can use."""
