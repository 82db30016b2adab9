-- A part of transfer.lua: who leads (docs/decisions/0039). A lease is a table: `key`, `caller`, `longestMs`, `leastMs`, `subscribersPerMs`,
-- and what `readLease` and `takeLease` set: `leader`, "self", "other" or "none", and `endsAt`, epoch ms, or 0. Uses `nowExact`.

-- A lease of a length that the script never writes does not count: a clock was set.
local function readLease(lease)
  lease.leader, lease.endsAt = 'none', 0
  -- only the length of a lease, because another program can have written any size
  local stored = redis.pcall('GETRANGE', lease.key, 0, 99)
  if type(stored) ~= 'string' then return lease end
  local ends, holder = string.match(stored, '^(%d+) (.*)$')
  ends = tonumber(ends)
  if not ends or ends <= nowExact or ends > nowExact + lease.longestMs then return lease end
  lease.leader, lease.endsAt = holder == lease.caller and 'self' or 'other', ends
  return lease
end

-- The lease that the caller wants: the longest while entries are due; after it has moved all that were due, one that grows with the number
-- of subscribers; 0 if it moved nothing or no other client listens.
local function wantedMs(lease, due, moved, subscribers)
  if due and due <= nowExact then return lease.longestMs end
  if moved == 0 or subscribers <= 1 then return 0 end
  return math.min(lease.longestMs, math.max(lease.leastMs, math.floor(subscribers / lease.subscribersPerMs)))
end

-- Whether the caller leads, and at least half of `wanted` is left after the next due time: its next transfer may be that late.
local function isLongEnough(lease, wanted, due)
  return lease.leader == 'self' and due and lease.endsAt - math.max(due, nowExact) >= wanted / 2
end

local function takeLease(lease, wanted)
  lease.endsAt = math.floor(nowExact) + wanted
  -- if the server refuses this, the followers wait all the same
  local taken = redis.pcall('SET', lease.key, string.format('%.0f ', lease.endsAt) .. lease.caller, 'PX', wanted)
  lease.leader = taken.ok and 'self' or 'none'
end
