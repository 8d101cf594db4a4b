"""The studio: synthetic recordings with known truth, by light and by X-ray."""
