"""The card acquirer over ISO 8583: messages of the 1987 edition on TCP links that stay open."""
