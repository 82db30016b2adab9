-- Take pending entries before they are due; they will not be delivered. Reads in small steps, as the entries can be large. To find an entry
-- in the order list can be a walk, so the script reads the clock after each one, and does not search a long list for an unreadable entry:
-- its partner there is an orphan, which transfers set aside when it is at the head.
--
-- KEYS[1] timeouts  zset  packed entry -> due time, epoch ms
-- KEYS[2] order     list  packed entries in offer order
--
-- ARGV[1] count    integer  most entries to take
-- ARGV[2] bytes    integer  take no more once the entries have this many bytes
-- ARGV[3] ordered  flag     the oldest offered first, by the order list; otherwise the earliest due first
-- ARGV[4] budgetUs  integer  after this many microseconds the script searches the order list for no other entry
--
-- returns the packed entries
local timeouts, order = KEYS.timeouts, KEYS.order
local count, most, budget = tonumber(ARGV.count), tonumber(ARGV.bytes), tonumber(ARGV.budgetUs)
local SHORT = 1000 -- the longest order list that is walked for an unreadable entry

-- include shared/next-step.lua

-- include shared/entry-layout.lua

-- include shared/elapsed.lua

local taken, bytes = {}, 0
if ARGV.ordered == '0' then
  local listed = redis.call('LLEN', order)
  local isOver = false
  local step = 8
  while #taken < count and bytes < most do
    step = math.min(step, count - #taken)
    local entries = redis.call('ZRANGE', timeouts, 0, step - 1)
    for _, entry in ipairs(entries) do
      local start, inOrder = layout(entry)
      local isWalked = listed > 0 and (inOrder or (not start and listed <= SHORT))
      if isWalked then redis.call('LREM', order, 1, entry) end
      redis.call('ZREM', timeouts, entry)
      taken[#taken + 1] = entry
      bytes = bytes + #entry
      isOver = bytes >= most or isWalked and elapsed() >= budget
      if isOver then break end
    end
    if isOver or #entries < step then break end
    step = nextStep(step, #taken, bytes, most)
  end
  return taken
end

redis.call('ZCARD', timeouts) -- a key of another type fails before any entry is taken
for _ = 1, count + 1000 do -- elements that are not in the schedule were delivered already; some are skipped
  if #taken == count or bytes >= most then break end
  local entry = redis.call('LPOP', order)
  if not entry then break end
  if redis.call('ZREM', timeouts, entry) == 1 then
    taken[#taken + 1] = entry
    bytes = bytes + #entry
  end
end
return taken
