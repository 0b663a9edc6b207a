"""What must hold: composed models, properties, the explorer, and trace validation."""
