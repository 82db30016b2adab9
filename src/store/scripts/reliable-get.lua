-- Read messages by their ids. Changes nothing. If they are large, it answers only for the first ids.
--
-- KEYS[1] messages    hash  id -> record
-- KEYS[2] deliveries  hash  id -> "<attempts>", in flight "<attempts> <token>"
-- KEYS[3] failures    hash  id -> a line for each failed attempt
-- KEYS[4] inFlight    zset  priority and id -> when its visibility ends, epoch ms
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
-- KEYS[15] due10  zset  id -> when it is visible, epoch ms; messages with a group
--
-- ARGV[1] nowMs   integer  the caller's clock, or -1 for the server's
-- ARGV[2..] ids   bytes*
--
-- returns {now as text, then for each id -1 when there is no such message, or six: priority, when it is or was visible again, 1 in flight,
--   attempts, failures, record}; for at least one id
local messages, deliveries, failures, inFlight = KEYS.messages, KEYS.deliveries, KEYS.failures, KEYS.inFlight
local due = {KEYS.due0, KEYS.due1, KEYS.due2, KEYS.due3, KEYS.due4, KEYS.due5, KEYS.due6, KEYS.due7, KEYS.due8, KEYS.due9, KEYS.due10}

-- include shared/milliseconds.lua

-- include shared/attempts.lua

-- include shared/aside.lua

-- include shared/locate.lua

-- include shared/failures.lua

local BYTES = 1048576 -- the most bytes of records in one reply, except for the first record
local now = milliseconds(ARGV.nowMs)
local reply, bytes = {string.format('%.0f', now)}, 0
for at = 2, #ARGV do
  local id = ARGV[at]
  local record = redis.call('HGET', messages, id)
  bytes = bytes + #(record or '')
  if bytes > BYTES and at > 2 then break end
  local priority, visible, isTaken
  if record then priority, visible, isTaken = locate(due, inFlight, id) end
  local last = #reply
  if priority then
    local attempts = attemptsOf(deliveryOf(deliveries, id))
    reply[last + 1], reply[last + 2] = priority, string.format('%.0f', visible)
    reply[last + 3], reply[last + 4] = isTaken and 1 or 0, attempts
    reply[last + 5], reply[last + 6] = historyOf(failures, id) or '', record
  else
    reply[last + 1] = -1
  end
end
return reply
