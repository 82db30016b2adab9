-- Take pending entries before they are due; they will not be delivered.
--
-- KEYS[1] timeouts  zset  packed entry -> due time, epoch ms
-- KEYS[2] order     list  packed entries in offer order
--
-- ARGV[1] count    integer  most entries to take
-- ARGV[2] ordered  flag     the oldest offered first, by the order list; otherwise the earliest due first
--
-- returns the packed entries
local timeouts, order = KEYS[1], KEYS[2]
local count = tonumber(ARGV[1])

if ARGV[2] == '0' then
  local entries = redis.call('ZRANGE', timeouts, 0, count - 1)
  local listed = redis.call('EXISTS', order) == 1
  for _, entry in ipairs(entries) do
    if listed then redis.call('LREM', order, 1, entry) end
    redis.call('ZREM', timeouts, entry)
  end
  return entries
end

redis.call('ZCARD', timeouts) -- a schedule of another type is noticed before anything is taken
local entries = {}
for _ = 1, count + 1000 do -- an element that the schedule does not know was delivered already; some may be passed over
  if #entries == count then break end
  local entry = redis.call('LPOP', order)
  if not entry then break end
  if redis.call('ZREM', timeouts, entry) == 1 then entries[#entries + 1] = entry end
end
return entries
