"""What is worth knowing of a fit that goes on: its data, its losses, its schedules."""
