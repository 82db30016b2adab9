-- Take pending entries before they are due; they will not be delivered. Reads in small steps, as the entries can be large.
--
-- KEYS[1] timeouts  zset  packed entry -> due time, epoch ms
-- KEYS[2] order     list  packed entries in offer order
--
-- ARGV[1] count    integer  most entries to take
-- ARGV[2] bytes    integer  none is taken after the entry that brings them to so many bytes
-- ARGV[3] ordered  flag     the oldest offered first, by the order list; otherwise the earliest due first
--
-- returns the packed entries
local timeouts, order = KEYS[1], KEYS[2]
local count, most = tonumber(ARGV[1]), tonumber(ARGV[2])

-- include shared/next-step.lua

local taken, bytes = {}, 0
if ARGV[3] == '0' then
  local listed = redis.call('EXISTS', order) == 1
  local step = 8
  while #taken < count and bytes < most do
    step = math.min(step, count - #taken)
    local entries = redis.call('ZRANGE', timeouts, 0, step - 1)
    for _, entry in ipairs(entries) do
      if listed then redis.call('LREM', order, 1, entry) end
      redis.call('ZREM', timeouts, entry)
      taken[#taken + 1] = entry
      bytes = bytes + #entry
      if bytes >= most then break end
    end
    if #entries < step then break end
    step = nextStep(step, #taken, bytes, most)
  end
  return taken
end

redis.call('ZCARD', timeouts) -- a schedule of another type is noticed before anything is taken
for _ = 1, count + 1000 do -- an element that the schedule does not know was delivered already; some may be passed over
  if #taken == count or bytes >= most then break end
  local entry = redis.call('LPOP', order)
  if not entry then break end
  if redis.call('ZREM', timeouts, entry) == 1 then
    taken[#taken + 1] = entry
    bytes = bytes + #entry
  end
end
return taken
