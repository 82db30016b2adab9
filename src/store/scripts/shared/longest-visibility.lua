-- A longer visibility counts as this one, 365 days. A claim that ends later was not written by a client.
local LONGEST_VISIBILITY = 31536000000
