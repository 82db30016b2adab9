-- Remove messages that were handled, where their visibility has not ended and no other client has claimed them since.
--
-- KEYS[1] messages    hash  id -> record
-- KEYS[2] deliveries  hash  id -> "<attempts>", in flight "<attempts> <token>"
-- KEYS[3] failures    hash  id -> a line for each failed attempt
-- KEYS[4] inFlight    zset  priority and id -> when its visibility ends, epoch ms
-- KEYS[5] config      hash  what `setConfig` and pausing say
-- KEYS[6] changes     stream  what the scripts have changed
--
-- ARGV[1] nowMs       integer  the caller's clock, or -1 for the server's
-- ARGV[2] client      text     the caller
-- ARGV[3..] handled   bytes*   for each message two: its priority and id, "<attempts> <token>"
--
-- returns for each message 1, or 0 when it was not the caller's any more
local messages, deliveries, failures, inFlight = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

-- include shared/milliseconds.lua

-- include shared/attempts.lua

-- include shared/change-log.lua

local now = milliseconds(ARGV[1])
local members, named = {}, {}
for at = 3, #ARGV, 2 do
  members[#members + 1], named[#named + 1] = ARGV[at], string.sub(ARGV[at], 2)
end
if #members == 0 then return {} end
local ends = redis.call('ZMSCORE', inFlight, unpack(members))
local stored, PAGE = {}, 16
for from = 1, #named, PAGE do
  local to = math.min(from + PAGE - 1, #named)
  for n, delivery in ipairs(deliveriesOf(deliveries, named, from, to)) do stored[from + n - 1] = delivery end
end

local reply, gone, ids, seen = {}, {}, {}, {}
for n, member in ipairs(members) do
  local isHeld = not seen[member] and stored[n] == ARGV[2 * n + 2] and tonumber(ends[n] or 0) > now
  if isHeld then
    seen[member] = true
    gone[#gone + 1], ids[#ids + 1] = member, named[n]
  end
  reply[n] = isHeld and 1 or 0
end
if #ids > 0 then
  redis.call('ZREM', inFlight, unpack(gone))
  redis.call('HDEL', messages, unpack(ids))
  redis.call('HDEL', deliveries, unpack(ids))
  redis.pcall('HDEL', failures, unpack(ids))
  local log = logOf(KEYS[5])
  if log then
    for _, id in ipairs(ids) do noteChange(log, 'k,,,', id) end
    writeChanges(log, KEYS[6], KEYS[5], ARGV[2])
  end
end
return reply
