-- Continue the promotion of the earliest bucket whose time has come, as transfers do: afterwards its entries are in the schedule.
--
-- KEYS[1] timeouts  zset  packed entry -> due time, epoch ms
-- KEYS[2] wheel     zset  minute of a bucket -> when the bucket is promoted, epoch ms
--
-- ARGV[1] nowMs  integer  the caller's clock, or -1 for the server's
--
-- returns whether anything was done, not while the first bucket waits for its cancelled ids; or the server's error, such as a right that
--   the user lacks
local timeouts, wheel = KEYS.timeouts, KEYS.wheel

-- include shared/elapsed.lua

-- include shared/milliseconds.lua

-- include shared/next-step.lua

-- include shared/wheel.lua

-- include shared/wheel-promotion.lua

local now = milliseconds(ARGV.nowMs)
local horizon, waits = horizonOf(wheel, now), false
local first, problem, done = firstBucket(wheel)
if first[1] and tonumber(first[2]) <= promotionOf(horizon) then
  local steps, _
  steps, first, problem, _, _, waits = promoteBuckets(timeouts, wheel, first, promotionOf(horizon), now)
  done = done + steps
end
if done == 0 and problem ~= '' and not waits then return redis.error_reply(problem) end
return done > 0 and 1 or 0
