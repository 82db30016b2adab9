-- 365 days, as in src/reliable/visibility.ts. Another program has stored a longer setting, and it has no effect.
local LONGEST_VISIBILITY = 31536000000
