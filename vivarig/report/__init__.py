"""The report: one self-contained HTML page that opens from disk and shows what to trust (`build`)."""
