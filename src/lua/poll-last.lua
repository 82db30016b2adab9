-- Take the last pending entry before it is due, and put its payload first into another list.
-- The other list is pushed to first, so that an error leaves the entry where it was.
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
redis.call('LLEN', order) -- one of another type is noticed before anything changes

-- The unsigned 64-bit little endian number at `at`, or nil where it is too large to be a length or there are no bytes.
local function length(entry, at)
  local a, b, c, d, e, f, g, h = string.byte(entry, at, at + 7)
  if not h or e + f + g + h > 0 then return nil end
  return a + b * 256 + c * 65536 + d * 16777216
end

-- The payload, and whether the entry can stand in the order list; nil and true for an unreadable entry.
local function read(entry)
  local size = #entry
  local idLength = string.byte(entry, 1)
  -- with an id of 7 bytes the length would stand where the old format has it, so that is always the old format
  if idLength and idLength ~= 7 and length(entry, idLength + 2) == size - idLength - 9 then
    return string.sub(entry, idLength + 10), idLength == 8
  end
  if length(entry, 9) == size - 16 then return string.sub(entry, 17), true end
  return nil, true
end

for _ = 1, 1000 do -- so many that cannot be given may be passed over in one script
  local entry
  if ARGV[1] == '1' then
    entry = redis.call('LINDEX', order, -1)
  else
    entry = redis.call('ZRANGE', timeouts, -1, -1)[1]
  end
  if not entry then return false end
  local payload, inOrder = read(entry)
  local pending = redis.call('ZSCORE', timeouts, entry)
  if pending then
    if payload then
      redis.call('LPUSH', target, payload)
    else
      local time = redis.call('TIME')
      local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
      redis.call('RPUSH', quarantine, 'malformed ' .. now .. ' ' .. entry)
    end
  end
  if inOrder or ARGV[1] == '1' then redis.call('LREM', order, -1, entry) end
  redis.call('ZREM', timeouts, entry)
  if pending and payload then return payload end
end
return false
