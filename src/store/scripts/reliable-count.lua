-- How many messages there are, by what becomes of them next.
--
-- KEYS[1] messages      hash  id -> record
-- KEYS[2] config        hash  what `setConfig` and pausing say
-- KEYS[3] deadMessages  hash  the same of the queue of dead letters
-- KEYS[4] inFlight      zset  priority and id -> when its visibility ends, epoch ms
-- KEYS[5] due0  zset  id -> when it is visible, epoch ms; priority 0
-- KEYS[6] due1  zset  id -> when it is visible, epoch ms; priority 1
-- KEYS[7] due2  zset  id -> when it is visible, epoch ms; priority 2
-- KEYS[8] due3  zset  id -> when it is visible, epoch ms; priority 3
-- KEYS[9] due4  zset  id -> when it is visible, epoch ms; priority 4
-- KEYS[10] due5  zset  id -> when it is visible, epoch ms; priority 5
-- KEYS[11] due6  zset  id -> when it is visible, epoch ms; priority 6
-- KEYS[12] due7  zset  id -> when it is visible, epoch ms; priority 7
-- KEYS[13] due8  zset  id -> when it is visible, epoch ms; priority 8
-- KEYS[14] due9  zset  id -> when it is visible, epoch ms; priority 9
-- KEYS[15] due10  zset  id -> when it is visible, epoch ms; of those with a group
--
-- ARGV[1] nowMs  integer  the caller's clock, or -1 for the server's
--
-- returns {now as text, all, visible, delayed, in flight, dead letters, when the first is or was visible as text or "", 1 if adding is
--   paused, 1 if polling is paused}
local messages, config, inFlight = KEYS[1], KEYS[2], KEYS[4]
local due = {KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11], KEYS[12], KEYS[13], KEYS[14], KEYS[15]}

-- include shared/milliseconds.lua

-- include shared/schedules.lua

-- include shared/settings.lua

local now = milliseconds(ARGV[1])
local visible, delayed = redis.call('ZCOUNT', inFlight, '-inf', now), 0
local held = redis.call('ZCARD', inFlight) - visible
for _, schedule in ipairs(due) do
  local here = redis.call('ZCOUNT', schedule, '-inf', now)
  visible, delayed = visible + here, delayed + redis.call('ZCARD', schedule) - here
end
local first = earliest(due)
local ended = tonumber(redis.call('ZRANGE', inFlight, 0, 0, 'WITHSCORES')[2])
if ended and ended <= now and (not first or ended < first) then first = ended end -- visible since then
local settings = stored(config, 'addPaused', 'pollPaused')
return {
  string.format('%.0f', now), redis.call('HLEN', messages), visible, delayed, held, redis.call('HLEN', KEYS[3]),
  first and string.format('%.0f', first) or '', settings.addPaused == '1' and 1 or 0, settings.pollPaused == '1' and 1 or 0
}
