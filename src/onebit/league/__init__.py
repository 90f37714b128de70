"""The whole field in one ring: every learner on every stream, ranked."""
