-- Count the messages of a queue by state, and read its pauses. The page runs this for thousands of queues repeatedly: most schedules are empty, so the
-- script ends as soon as it has found all messages.
--
-- KEYS[1] messages      hash  id -> record
-- KEYS[2] config        hash  the configuration, with the pauses
-- KEYS[3] deadMessages  hash  id -> record, of the queue of dead letters
-- KEYS[4] inFlight      zset  priority and id -> when its visibility ends, epoch ms
-- KEYS[5] due0   zset  id -> when it is visible, epoch ms; priority 0
-- KEYS[6] due1   zset  id -> when it is visible, epoch ms; priority 1
-- KEYS[7] due2   zset  id -> when it is visible, epoch ms; priority 2
-- KEYS[8] due3   zset  id -> when it is visible, epoch ms; priority 3
-- KEYS[9] due4   zset  id -> when it is visible, epoch ms; priority 4
-- KEYS[10] due5  zset  id -> when it is visible, epoch ms; priority 5
-- KEYS[11] due6  zset  id -> when it is visible, epoch ms; priority 6
-- KEYS[12] due7  zset  id -> when it is visible, epoch ms; priority 7
-- KEYS[13] due8  zset  id -> when it is visible, epoch ms; priority 8
-- KEYS[14] due9  zset  id -> when it is visible, epoch ms; priority 9
-- KEYS[15] due10 zset  id -> when it is visible, epoch ms; of those with a group
--
-- ARGV[1] now  integer  epoch ms
--
-- returns {all, visible, delayed, in flight, dead letters, when the first visible one was due as text or "", 1 if polling is paused, 1 if adding
--   is paused, 1 if messages are set aside as their task is paused}; these are visible, and not in the time of the first. A key of another type is an error
local due = {KEYS.due0, KEYS.due1, KEYS.due2, KEYS.due3, KEYS.due4, KEYS.due5, KEYS.due6, KEYS.due7, KEYS.due8, KEYS.due9, KEYS.due10}
local inFlight, config, now = KEYS.inFlight, KEYS.config, ARGV.now

local ASIDE, BEYOND = '9007199254740992', '(18014398509481984' -- the scores of what is set aside
local first
local isAside = 0
-- The numbers of visible and of delayed messages in a sorted set.
local function divide(key)
  local all = redis.call('ZCARD', key)
  if all == 0 then return 0, 0 end
  local visible = redis.call('ZCOUNT', key, '-inf', now)
  if visible > 0 then
    local score = tonumber(redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2])
    if not first or score < first then first = score end
  end
  if visible < all and key ~= inFlight then
    local aside = redis.call('ZCOUNT', key, ASIDE, BEYOND)
    if aside > 0 then visible, isAside = visible + aside, 1 end
  end
  return visible, all - visible
end

local total = redis.call('HLEN', KEYS.messages)
local visible, held, delayed = 0, 0, 0
if total > 0 then visible, held = divide(inFlight) end -- what a consumer had longer than it may is visible again
for _, key in ipairs(due) do
  if visible + delayed + held >= total then break end
  local here, later = divide(key)
  visible, delayed = visible + here, delayed + later
end
-- another program can have written there, also a text of any size
local function isPaused(name)
  if redis.call('HSTRLEN', config, name) ~= 1 then return 0 end
  return redis.call('HGET', config, name) == '1' and 1 or 0
end
return {
  total, visible, delayed, held, redis.call('HLEN', KEYS.deadMessages), first and string.format('%.0f', first) or '',
  isPaused('pollPaused'), isPaused('addPaused'), isAside
}
