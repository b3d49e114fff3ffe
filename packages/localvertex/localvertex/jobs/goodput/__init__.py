"""How the time of a custom job was spent, from its replicas' event logs; the page that shows it is in `show`."""
