-- Take the last pending entry before it is due, and put its payload first into another list.
-- The other list is pushed to first, so that an error leaves the entry where it was. An entry that cannot be read is not searched for in a
-- long order list: its partner there is an orphan, which transfers set aside when it is at the head.
--
-- KEYS[1] timeouts    zset  packed entry -> due time, epoch ms
-- KEYS[2] order       list  packed entries in offer order
-- KEYS[3] target      list  where the payload goes
-- KEYS[4] quarantine  list  what could not be read, as "<reason> <epoch ms> <bytes>"
--
-- ARGV[1] ordered  flag  the entry that was offered last; otherwise the one that is due last
--
-- returns the payload, or nil when nothing is pending
local timeouts, order, target, quarantine = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local SHORT = 1000 -- elements of an order list that is walked for an entry that cannot be read
local isShort = redis.call('LLEN', order) <= SHORT -- one of another type is noticed before anything changes

-- include shared/entry-layout.lua

local passed = 0 -- at the end, what cannot be read and the quarantine did not take: it stays
for _ = 1, 1000 do -- so many that cannot be given may be passed over in one script
  local entry
  if ARGV[1] == '1' then
    entry = redis.call('LINDEX', order, -1 - passed)
  else
    entry = redis.call('ZRANGE', timeouts, -1 - passed, -1 - passed)[1]
  end
  if not entry then return false end
  local start, inOrder = layout(entry)
  local pending = redis.call('ZSCORE', timeouts, entry)
  local stays = false
  if pending and start then
    redis.call('LPUSH', target, string.sub(entry, start))
  elseif pending then
    local time = redis.call('TIME')
    local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
    stays = type(redis.pcall('RPUSH', quarantine, 'malformed ' .. now .. ' ' .. entry)) == 'table'
  end
  if stays then
    passed = passed + 1
  else
    if inOrder or ARGV[1] == '1' or (not start and isShort) then redis.call('LREM', order, -1, entry) end
    redis.call('ZREM', timeouts, entry)
    if pending and start then return string.sub(entry, start) end
  end
end
return false
