-- Take the last pending entry before it is due, and put its payload first into another list.
-- It pushes to the other list first, so that an error leaves the entry where it was. It does not search a long order list for an unreadable
-- entry: its partner there is an orphan, which transfers set aside when it is at the head.
--
-- KEYS[1] timeouts    zset  packed entry -> due time, epoch ms
-- KEYS[2] order       list  packed entries in offer order
-- KEYS[3] target      list  the list that gets the payload
-- KEYS[4] quarantine  list  unreadable entries, as "<reason> <epoch ms> <bytes>"
--
-- ARGV[1] ordered  flag  the entry that was offered last; otherwise the one that is due last
--
-- returns the payload, or nil when nothing is pending
local timeouts, order, target, quarantine = KEYS.timeouts, KEYS.order, KEYS.target, KEYS.quarantine
local SHORT = 1000 -- the longest order list that is walked for an unreadable entry
local isShort = redis.call('LLEN', order) <= SHORT -- a key of another type fails before any change

-- include shared/entry-layout.lua

local passed = 0 -- unreadable entries at the end that the quarantine did not take, and that stay
for _ = 1, 1000 do -- the most entries that one script skips
  local entry
  if ARGV.ordered == '1' then
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
    if inOrder or ARGV.ordered == '1' or (not start and isShort) then redis.call('LREM', order, -1, entry) end
    redis.call('ZREM', timeouts, entry)
    if pending and start then return string.sub(entry, start) end
  end
end
return false
