"""Values of parameters: types, placeholders, arguments and conditions; nothing here runs a task."""
