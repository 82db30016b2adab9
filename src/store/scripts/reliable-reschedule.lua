-- Give a message that no consumer has a new time, and perhaps a new priority.
--
-- KEYS[1] messages  hash  id -> record
-- KEYS[2] deliveries  hash  id -> "<attempts>", in flight "<attempts> <token>"
-- KEYS[3] inFlight  zset  priority and id -> when its visibility ends, epoch ms
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
-- KEYS[15] config  hash  the queue's settings
-- KEYS[16] changes  stream  the queue's changes
-- KEYS[17] due10  zset  id -> when it is visible, epoch ms; messages with a group
-- KEYS[18] groupOrder  zset  group, due time and id of the messages with a group, in the order of their bytes
-- KEYS[19] groupTurns  zset  group -> its turn
-- KEYS[20] groupWakes  zset  group -> when it can have a turn, epoch ms
-- KEYS[21] groups  hash  group -> its claims, and when they were
--
-- ARGV[1] channel   text     announces when messages become visible
-- ARGV[2] nowMs     integer  the caller's clock, or -1 for the server's
-- ARGV[3] id        bytes
-- ARGV[4] when      text     the new delay in ms, or "@" and epoch ms, not before now; "" for no change
-- ARGV[5] priority  integer  0 to 9; -1 for no change
-- ARGV[6] client    text     the caller
--
-- returns when it becomes visible as text, or "" when there is no such message or a consumer has it; "-3" when the time exceeds 2^53-1
local messages, inFlight, ticks = KEYS.messages, KEYS.inFlight, KEYS.ticks
local due = {KEYS.due0, KEYS.due1, KEYS.due2, KEYS.due3, KEYS.due4, KEYS.due5, KEYS.due6, KEYS.due7, KEYS.due8, KEYS.due9, KEYS.due10}
local id, when = ARGV.id, ARGV.when

-- include shared/milliseconds.lua

-- include shared/oldest-due.lua

-- include shared/announce.lua

-- include shared/aside.lua

-- include shared/locate.lua

-- include shared/record.lua

-- include shared/change-log.lua

-- include shared/settings.lua

-- include shared/names.lua

-- include shared/limits.lua

-- include shared/rate-limit.lua

-- include shared/groups.lua

-- include shared/group-places.lua

local now = milliseconds(ARGV.nowMs)
local priority, visible, isTaken = locate(due, inFlight, id)
if not priority or (isTaken and visible > now) then return '' end
local log, before = logOf(KEYS.config), visible
if string.sub(when, 1, 1) == '@' then
  visible = math.max(now, tonumber(string.sub(when, 2)))
elseif when ~= '' then
  visible = now + tonumber(when)
end
if visible > 9007199254740991 then return '-3' end
local isDelivered = redis.call('HEXISTS', KEYS.deliveries, id) == 1 -- before any change: a key of another type fails here
announce({inFlight, KEYS.groupWakes, unpack(due, 1, 10)}, ticks, ARGV.channel, visible, now)
-- The later expiry before the move, the earlier one after it: after an error in between the message does not expire too early.
local expires
if visible >= before then expires = shiftExpiry(messages, isDelivered, id, before, visible) end
local to = tonumber(ARGV.priority)
if to < 0 or priority == GROUPED then to = priority end
local group = priority == GROUPED and groupOf(messages, id)
if group then
  local groups = openGroups({inFlight = inFlight, schedule = KEYS.due10, order = KEYS.groupOrder, turns = KEYS.groupTurns, wakes = KEYS.groupWakes, states = KEYS.groups}, KEYS.config, now)
  local former = not isTaken and placeNow(groups, group, id)
  local _, place = addToGroup(groups, group, visible, id)
  if isTaken then redis.call('ZREM', inFlight, memberOf(priority, id)) elseif former then leavePlace(groups, former, place, id) end
  if refreshGroup(groups, group, isTaken and -1) and isTaken then publishSlot(messages, now) end
else
-- first, so that after an error it is still where it was
redis.call('ZADD', due[to + 1], string.format('%.0f', visible), id)
if isTaken then
  redis.call('ZREM', inFlight, priority .. id)
elseif to ~= priority then
  redis.call('ZREM', due[priority + 1], id)
end
end
if visible < before then expires = shiftExpiry(messages, isDelivered, id, before, visible) end
if log then
  noteChange(log, changeHead('r', nil, string.format('%.0f', visible), to == GROUPED and 0 or to), id, expires)
  writeChanges(log, KEYS.changes, KEYS.config, ARGV.client)
end
return string.format('%.0f', visible)
