-- Restore messages with their due times, attempts, failures, headers and payloads. An existing message of the same id
-- stays unchanged, unless the caller names its due time, or the end of its visibility if a consumer has it: then the restored message
-- takes its place, and waits. If the message to replace no longer exists, it was handled, and nothing is restored. A record that is in no
-- schedule and not in flight counts as absent. Neither `maxSize` nor a pause applies, because these
-- messages were accepted before. The caller limits the script's time by the number of messages.
--
-- KEYS[1] messages    hash  id -> record
-- KEYS[2] deliveries  hash  id -> "<attempts>", in flight "<attempts> <token>"
-- KEYS[3] failures    hash  id -> a line for each failed attempt
-- KEYS[4] inFlight    zset  priority and id -> when its visibility ends, epoch ms
-- KEYS[5] ticks  zset  name of a repeat -> when its next message has to be prepared, epoch ms
-- KEYS[6] due0  zset  id -> when it is visible, epoch ms; priority 0
-- KEYS[7] due1  zset  id -> when it is visible, epoch ms; priority 1
-- KEYS[8] due2  zset  id -> when it is visible, epoch ms; priority 2
-- KEYS[9] due3  zset  id -> when it is visible, epoch ms; priority 3
-- KEYS[10] due4  zset  id -> when it is visible, epoch ms; priority 4
-- KEYS[11] due5  zset  id -> when it is visible, epoch ms; priority 5
-- KEYS[12] due6  zset  id -> when it is visible, epoch ms; priority 6
-- KEYS[13] due7  zset  id -> when it is visible, epoch ms; priority 7
-- KEYS[14] due8  zset  id -> when it is visible, epoch ms; priority 8
-- KEYS[15] due9  zset  id -> when it is visible, epoch ms; priority 9
-- KEYS[16] config  hash  the queue's settings
-- KEYS[17] changes  stream  the queue's changes
-- KEYS[18] due10  zset  id -> when it is visible, epoch ms; messages with a group
-- KEYS[19] groupOrder  zset  group, due time and id of the messages with a group, in the order of their bytes
-- KEYS[20] groupTurns  zset  group -> its turn
-- KEYS[21] groupWakes  zset  group -> when it can have a turn, epoch ms
-- KEYS[22] groups  hash  group -> its claims, and when they were
--
-- ARGV[1] channel  text    announces when messages become visible
-- ARGV[2] client   text    the caller
-- ARGV[3] known    flag    1 when the readers of the change stream know the messages: the entry then has only their ids
-- ARGV[4..] items  bytes*  for each message three: its id; "<priority>,<due, epoch ms>,<attempts>,<expires, epoch ms>,<delivery limit>,
--   <bytes of headers>,<bytes of failures>,<due time of the message it may replace>", with nothing for missing ones; failures, group,
--   headers and payload; with a group "g<bytes of it>" is in the place of the priority; of a dead letter with a group, which takes no
--   turns, "<priority>d<bytes of it>"
--
-- returns the outcome of each message: 1 restored, 2 restored in the place of another, 0 the id exists, 3 the message that it may
--   replace does not exist
local messages, deliveries, failures, inFlight, ticks = KEYS.messages, KEYS.deliveries, KEYS.failures, KEYS.inFlight, KEYS.ticks
local due = {KEYS.due0, KEYS.due1, KEYS.due2, KEYS.due3, KEYS.due4, KEYS.due5, KEYS.due6, KEYS.due7, KEYS.due8, KEYS.due9, KEYS.due10}
local channel, isKnown = ARGV.channel, ARGV.known == '1'

-- include shared/oldest-due.lua

-- include shared/announce.lua

-- include shared/aside.lua

-- include shared/locate.lua

-- include shared/placed.lua

-- include shared/record.lua

-- include shared/change-log.lua

-- include shared/settings.lua

-- include shared/names.lua

-- include shared/limits.lua

-- include shared/rate-limit.lua

-- include shared/groups.lua

-- include shared/group-places.lua

-- include shared/left-behind.lua

-- include shared/milliseconds.lua

local function readDetails(text)
  local priority, at, attempts, expires, limit, headers, history, replaces =
    string.match(text, '^([%dgd]+),(%d+),(%d+),(%d*),(%d*),(%d+),(%d+),(%d*)$')
  local own, kind, group = string.match(priority, '^(%d*)([gd]?)(%d*)$')
  if kind == '' then group = nil end
  return {
    priority = kind == 'g' and GROUPED or tonumber(own), at = at, attempts = tonumber(attempts), history = tonumber(history), replaces = tonumber(replaces),
    group = tonumber(group), expires = tonumber(expires), limit = tonumber(limit), headers = tonumber(headers),
  }
end

-- Before any change: the earliest time is published.
local now, details, first = milliseconds(-1), {}, nil
for at = 4, #ARGV, 3 do
  local detail = readDetails(ARGV[at + 1])
  details[#details + 1] = detail
  if not first or tonumber(detail.at) < first then first = tonumber(detail.at) end
end
if first then announce({inFlight, KEYS.groupWakes, unpack(due, 1, 10)}, ticks, channel, first, now) end

local log = logOf(KEYS.config)
local settings = stored(KEYS.config, 'concurrency', 'grouped')
local groups = openGroups({inFlight = inFlight, schedule = KEYS.due10, order = KEYS.groupOrder, turns = KEYS.groupTurns, wakes = KEYS.groupWakes, states = KEYS.groups}, KEYS.config, now)

-- In this order, so that after an error between the writes every record is in a schedule. Returns its member in `order`, if it has a group.
local function put(id, detail, body)
  local rest = body
  if detail.history > 0 then
    redis.call('HSET', failures, id, string.sub(body, 1, detail.history))
    rest = string.sub(body, detail.history + 1)
  end
  if detail.attempts > 0 then redis.call('HSET', deliveries, id, string.format('%.0f', detail.attempts)) end
  local group = detail.group and string.sub(rest, 1, detail.group)
  if group then rest = string.sub(rest, detail.group + 1) end
  local place, _
  if group and detail.priority == GROUPED then
    if settings.grouped ~= '1' then redis.call('HSET', KEYS.config, 'grouped', '1') end
    settings.grouped = '1'
    _, place = addToGroup(groups, group, tonumber(detail.at), id)
    refreshGroup(groups, group)
  else
    redis.call('ZADD', due[detail.priority + 1], detail.at, id)
  end
  local record = writeMeta(detail.expires, detail.limit, detail.headers, group) .. rest
  redis.call('HSET', messages, id, record)
  if not log then return place end
  if isKnown then noteChange(log, 's,,,', id)
  else noteChange(log, changeHead('a', detail.attempts, detail.at, detail.priority == GROUPED and 0 or detail.priority), id, log.records and record) end
  return place
end

local function restore(id, detail, body)
  if redis.call('HEXISTS', messages, id) == 0 then
    if detail.replaces then return 3 end -- it was handled or removed meanwhile
    local isAnyLeft = redis.pcall('HEXISTS', deliveries, id) == 1
    put(id, detail, body)
    if isAnyLeft then
      forgetLeftBehind(deliveries, inFlight, {id})
      if detail.attempts > 0 then redis.call('HSET', deliveries, id, string.format('%.0f', detail.attempts)) end
    end
    return 1
  end
  if not detail.replaces then
    if isPlaced(due, inFlight, id) then return 0 end
    redis.call('HDEL', deliveries, id)
    redis.call('HDEL', failures, id)
    put(id, detail, body)
    return 1
  end
  local priority, visible, isTaken = locate(due, inFlight, id)
  if not priority or visible ~= detail.replaces then return 0 end
  redis.call('HDEL', deliveries, id)
  redis.call('HDEL', failures, id)
  local before = priority == GROUPED and groupOf(messages, id)
  if isTaken and isAtLimit(settings, inFlight, now) then publishSlot(messages, now) end
  local former = before and not isTaken and placeNow(groups, before, id)
  local place = put(id, detail, body)
  if isTaken then redis.call('ZREM', inFlight, memberOf(priority, id))
  elseif former then leavePlace(groups, former, place, id)
  elseif not before and priority ~= detail.priority then redis.call('ZREM', due[priority + 1], id) end
  if before and refreshGroup(groups, before, isTaken and -1) then publishSlot(messages, now) end
  return 2
end

local reply = {}
for n, detail in ipairs(details) do reply[n] = restore(ARGV[3 * n + 1], detail, ARGV[3 * n + 3]) end
writeChanges(log, KEYS.changes, KEYS.config, ARGV.client)
return reply
