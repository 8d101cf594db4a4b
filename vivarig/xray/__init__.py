"""The steps of ``vivarig xray``, each a function of a recording's folder, and where their files lie."""
