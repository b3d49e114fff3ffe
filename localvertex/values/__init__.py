"""What the inputs of a task become: types, placeholders, arguments and conditions; nothing is run here."""
