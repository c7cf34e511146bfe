"""The laboratory: measures, pictures and repeats experiments. Nothing outside it imports it."""
