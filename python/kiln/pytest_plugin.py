"""`pytest --kiln`: every launch of a test is checked."""
