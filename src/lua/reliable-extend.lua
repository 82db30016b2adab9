-- Give the holders of messages more time, where their visibility has not ended and nobody else has got them since.
--
-- KEYS[1] deliveries  hash  id -> "<attempts>", in flight "<attempts> <token>"
-- KEYS[2] config      hash  what `setConfig` and pausing say
-- KEYS[3] inFlight    zset  priority and id -> when its visibility ends, epoch ms
--
-- ARGV[1] nowMs         integer  the caller's clock, or -1 for the server's
-- ARGV[2] visibilityMs  integer  counted from now; -1 for what the queue says
-- ARGV[3..] handled     bytes*   for each message two: its priority and id, "<attempts> <token>"
--
-- returns for each message when its visibility ends now as text, or "" when it was not the caller's any more
local deliveries, config, inFlight = KEYS[1], KEYS[2], KEYS[3]

-- include shared/milliseconds.lua

local now = milliseconds(ARGV[1])
local visibility = tonumber(ARGV[2])
if visibility < 0 then visibility = tonumber(redis.call('HGET', config, 'visibility') or '') or 30000 end
local ending = string.format('%.0f', math.min(now + visibility, 9007199254740991))
local reply = {}
for at = 3, #ARGV, 2 do
  local member, lease = ARGV[at], ARGV[at + 1]
  local ends = tonumber(redis.call('ZSCORE', inFlight, member) or 0)
  local isHeld = ends > now and redis.call('HGET', deliveries, string.sub(member, 2)) == lease
  if isHeld then redis.call('ZADD', inFlight, 'XX', ending, member) end
  reply[#reply + 1] = isHeld and ending or ''
end
return reply
