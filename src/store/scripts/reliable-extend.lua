-- Give messages a new visibility, counted from now, if their old one has not ended and no other client has claimed them
-- since. A visibility that ends earlier than before is announced. The delivery counts as an attempt from now on, except for messages that
-- are not being handled yet.
--
-- KEYS[1] deliveries  hash  id -> "<attempts>", in flight "<attempts> <token>"
-- KEYS[2] config      hash  the queue's settings
-- KEYS[3] inFlight    zset  priority and id -> when its visibility ends, epoch ms
-- KEYS[4] ticks  zset  name of a repeat -> when its next message has to be prepared, epoch ms
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
-- KEYS[15] groupWakes  zset  group -> when it can have a turn, epoch ms
--
-- ARGV[1] channel       text     announces when messages become visible
-- ARGV[2] nowMs         integer  the caller's clock, or -1 for the server's
-- ARGV[3] visibilityMs  integer  counted from now; -1 for the queue's
-- ARGV[4] unbegun       integer  how many of the messages, the first ones, are not being handled yet
-- ARGV[5..] handled     bytes*   for each message two: its priority and id, "<attempts> <token>"
--
-- returns for each message when its visibility ends now as text, or "" when it was no longer the caller's
local deliveries, config, inFlight, ticks = KEYS.deliveries, KEYS.config, KEYS.inFlight, KEYS.ticks
local due = {KEYS.due0, KEYS.due1, KEYS.due2, KEYS.due3, KEYS.due4, KEYS.due5, KEYS.due6, KEYS.due7, KEYS.due8, KEYS.due9}

-- include shared/milliseconds.lua

-- include shared/oldest-due.lua

-- include shared/announce.lua

-- include shared/bypass-oom-check.lua

-- include shared/settings.lua

-- include shared/beforehand.lua

-- include shared/attempts.lua

-- include shared/limits.lua

-- include shared/longest-visibility.lua

local now = milliseconds(ARGV.nowMs)
local visibility = tonumber(ARGV.visibilityMs)
if visibility < 0 then visibility = setting(stored(config, 'visibilityTimeout').visibilityTimeout, 1, LONGEST_VISIBILITY) or 30000 end
local ending = math.min(now + math.min(visibility, LONGEST_VISIBILITY), 9007199254740991)
local text, early = string.format('%.0f', ending), beforehand(ending)
local begun = 5 + 2 * tonumber(ARGV.unbegun) -- the first message that is being handled
local reply, changes, endsEarlier = {}, {}, false
for at = 5, #ARGV, 2 do
  local member, delivery = ARGV[at], ARGV[at + 1]
  local score = redis.call('ZSCORE', inFlight, member) or '0'
  local ends = tonumber(score)
  local isHeld = ends > now and deliveryOf(deliveries, string.sub(member, 2)) == delivery
  if isHeld then
    endsEarlier = endsEarlier or ending < ends
    -- a begun delivery stays begun, whatever comes late
    changes[#changes + 1], changes[#changes + 2] = at < begun and isUnbegun(score) and early or text, member
  end
  reply[#reply + 1] = isHeld and text or ''
end
if #changes > 0 then
  -- an earlier end may be the first of all; at its limit the queue waits for that, however many messages are visible
  local isFull = endsEarlier and isAtLimit(stored(config, 'concurrency'), inFlight, now)
  announce(isFull and {inFlight} or {inFlight, KEYS.groupWakes, unpack(due)}, ticks, ARGV.channel, ending, now)
  bypassOomCheck(inFlight)
  redis.call('ZADD', inFlight, 'XX', unpack(changes))
end
return reply
