"""The OpenAI-compatible server over the bundled engine."""
