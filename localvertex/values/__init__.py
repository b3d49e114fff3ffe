"""Values inside a task: placeholders, arguments and conditions; the types of parameters are in `userinput.parameters`."""
