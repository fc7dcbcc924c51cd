"""Small front-end components of the app's own."""
