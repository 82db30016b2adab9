-- Add messages that become visible after their delays, and tell those who wait when there is something earlier than they know
-- of. Each is judged for itself: one that is refused does not keep the others. What has expired is as if it were not there. The
-- caller bounds the time it takes by how many it sends.
--
-- KEYS[1] messages    hash  id -> record
-- KEYS[2] deliveries  hash  id -> "<attempts>", in flight "<attempts> <token>"
-- KEYS[3] failures    hash  id -> a line for each failed attempt
-- KEYS[4] config      hash  what `setConfig` and pausing say
-- KEYS[5] once        zset  what must not be added again -> until when, epoch ms
-- KEYS[6] inFlight    zset  priority and id -> when its visibility ends, epoch ms
-- KEYS[7] ticks  zset  name of a repeat -> when its next message has to be prepared, epoch ms
-- KEYS[8] due0  zset  id -> when it is visible, epoch ms; priority 0
-- KEYS[9] due1  zset  id -> when it is visible, epoch ms; priority 1
-- KEYS[10] due2  zset  id -> when it is visible, epoch ms; priority 2
-- KEYS[11] due3  zset  id -> when it is visible, epoch ms; priority 3
-- KEYS[12] due4  zset  id -> when it is visible, epoch ms; priority 4
-- KEYS[13] due5  zset  id -> when it is visible, epoch ms; priority 5
-- KEYS[14] due6  zset  id -> when it is visible, epoch ms; priority 6
-- KEYS[15] due7  zset  id -> when it is visible, epoch ms; priority 7
-- KEYS[16] due8  zset  id -> when it is visible, epoch ms; priority 8
-- KEYS[17] due9  zset  id -> when it is visible, epoch ms; priority 9
--
-- ARGV[1] channel   text     announces when something becomes visible
-- ARGV[2] nowMs     integer  the caller's clock, or -1 for the server's
-- ARGV[3] existing  text     what happens where the id is there: 'keep', 'replace', or 'postpone'
-- ARGV[4] resent    flag     whether this may have been carried out before: then equal messages under these ids are the caller's
-- ARGV[5..] items   bytes*   for each message nine: id, priority, delay in ms or "@" and epoch ms, time to live in ms, delivery limit, headers, payload,
--   what it is once, for how many ms; empty for what is not given
--
-- returns {now as text, what became of each message, ...}: 1 added, 2 replaced, 3 postponed, 0 kept as it was, -1 was added within
--   its interval, -2 the queue is full, -3 a time exceeds 2^53-1, -4 adding is paused, -5 its payload is too large
local messages, deliveries, failures, config, once, inFlight, ticks = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local due = {KEYS[8], KEYS[9], KEYS[10], KEYS[11], KEYS[12], KEYS[13], KEYS[14], KEYS[15], KEYS[16], KEYS[17]}
local channel, existing, resent = ARGV[1], ARGV[3], ARGV[4] == '1'
local MAX = 9007199254740991

-- include shared/milliseconds.lua

-- include shared/schedules.lua

-- include shared/locate.lua

-- include shared/record.lua

local now = milliseconds(ARGV[2])
local settings = redis.call('HMGET', config, 'addPaused', 'maxSize', 'maxMessageBytes', 'delay', 'timeToLive')
local maxSize, maxBytes = tonumber(settings[2]), tonumber(settings[3])
local delayOfAll, ttlOfAll = tonumber(settings[4]) or 0, tonumber(settings[5])

-- After a delay, or at a moment that is not before now.
local function visibleAt(text)
  if string.sub(text, 1, 1) == '@' then return math.max(now, tonumber(string.sub(text, 2))) end
  return now + (tonumber(text) or delayOfAll)
end

-- Before anything is changed: who waits hears of the earliest of them.
local first
for at = 5, #ARGV, 9 do
  local visible = visibleAt(ARGV[at + 2])
  if not first or visible < first then first = visible end
end
if first and first <= MAX and settings[1] ~= '1' then announce({inFlight, unpack(due)}, ticks, channel, first) end

-- Whether nobody can get it any more, though no poll has come across it yet; who has got it may still handle it.
local function isOver(id, record)
  local expires = readMeta(record)
  if not expires or expires > now then return false end
  local _, visible, isTaken = locate(due, inFlight, id)
  return not (isTaken and visible > now)
end

local function add(at)
  local id, priority, headers, payload = ARGV[at], tonumber(ARGV[at + 1]), ARGV[at + 5], ARGV[at + 6]
  local visible = visibleAt(ARGV[at + 2])
  local ttl = tonumber(ARGV[at + 3]) or ttlOfAll
  local mark = ARGV[at + 7]
  local record = redis.call('HGET', messages, id)
  local isThere = record and not isOver(id, record)
  if isThere and resent then
    local _, _, _, rest = readMeta(record)
    if string.sub(record, rest) == headers .. payload then return 1 end
  end
  if settings[1] == '1' then return -4 end
  if maxBytes and #payload > maxBytes then return -5 end
  -- counted from when it is visible: a message that waits does not age
  local expires = ttl and visible + ttl
  if visible > MAX or (expires and expires > MAX) then return -3 end

  if isThere and existing == 'keep' then return 0 end
  local priorityNow, visibleNow, taken
  if record then priorityNow, visibleNow, taken = locate(due, inFlight, id) end
  if isThere and existing == 'postpone' then
    if not priorityNow or (taken and visibleNow > now) then return 0 end
    shiftExpiry(messages, id, visible - visibleNow)
    redis.call('ZADD', due[priorityNow + 1], string.format('%.0f', visible), id)
    if taken then redis.call('ZREM', inFlight, priorityNow .. id) end
    return 3
  end
  local marked
  if mark ~= '' then
    local untilMs = redis.call('ZSCORE', once, mark)
    if untilMs and tonumber(untilMs) > now and not isThere then return resent and 1 or -1 end
    marked = now + tonumber(ARGV[at + 8])
    if marked > MAX then return -3 end
  end
  if not isThere and maxSize and redis.call('HLEN', messages) - (record and 1 or 0) >= maxSize then return -2 end

  -- In this order, so that after an error between them nothing that has a record is in no schedule, or marked without being there.
  if record then
    redis.call('HDEL', deliveries, id)
    redis.call('HDEL', failures, id)
  end
  redis.call('ZADD', due[priority + 1], string.format('%.0f', visible), id)
  redis.call('HSET', messages, id, writeMeta(expires, tonumber(ARGV[at + 4]), #headers) .. headers .. payload)
  if taken then
    redis.call('ZREM', inFlight, priorityNow .. id)
  elseif priorityNow and priorityNow ~= priority then
    redis.call('ZREM', due[priorityNow + 1], id)
  end
  if marked then redis.call('ZADD', once, string.format('%.0f', marked), mark) end
  return isThere and 2 or 1
end

local reply = {string.format('%.0f', now)}
for at = 5, #ARGV, 9 do reply[#reply + 1] = add(at) end

-- More marks go than came, so that they do not pile up. Last, because after a write that takes no memory Redis would let the
-- others pass at maxmemory; and what was added is added, whatever becomes of the marks.
local stale = redis.pcall('ZRANGEBYSCORE', once, '-inf', now, 'LIMIT', 0, 20 + 2 * (#reply - 1))
if #stale > 0 then redis.call('ZREM', once, unpack(stale)) end
return reply
