"""What clients may send, validated; see OpenAI's API reference for the fields that it shares."""
