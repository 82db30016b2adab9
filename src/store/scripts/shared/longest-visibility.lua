-- 365 days, as in src/reliable/visibility.ts. A longer setting was not stored by setConfig, and counts as this one.
local LONGEST_VISIBILITY = 31536000000
