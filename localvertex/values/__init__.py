"""Values inside a task: placeholders, arguments and conditions; parameter types are in `userinput.parameters`."""
