-- Report whether a pending entry is missing among the last 2,000 elements of the order list, and push it there if asked to.
-- A walk of a whole list could block the server for too long: the caller has searched the earlier part, to which no element is
-- added.
--
-- KEYS[1] timeouts  zset  packed entry -> due time, epoch ms
-- KEYS[2] order     list  packed entries in offer order
--
-- ARGV[1] due      text   the due time of the entry
-- ARGV[2] prefix   bytes  what the entry starts with: the length of the id, and the id; or 8 bytes of the old format
-- ARGV[3] restore  flag   push a missing one to the right end
--
-- returns 1 when it was missing, 0 when it is among them or not pending with this due time any more
local timeouts, order = KEYS.timeouts, KEYS.order

-- include shared/find-entry.lua
-- include shared/next-step.lua

local LAST, BYTES = 2000, 1048576

local function isListed(entry)
  local at = redis.pcall('LPOS', order, entry, 'RANK', -1, 'MAXLEN', LAST)
  if not at or type(at) == 'number' then return at end
  -- before Redis 6.0.6 there is no LPOS
  local examined, bytes, step = 0, 0, 8
  while examined < LAST do
    step = math.min(step, LAST - examined)
    local elements = redis.call('LRANGE', order, -examined - step, -examined - 1)
    for _, element in ipairs(elements) do
      if element == entry then return true end
      bytes = bytes + #element
    end
    if #elements < step then break end
    examined = examined + step
    step = nextStep(step, examined, bytes, BYTES)
  end
  return false
end

local entry = findEntry(timeouts, ARGV.due, ARGV.prefix)
if not entry or isListed(entry) then return 0 end
if ARGV.restore == '1' then redis.call('RPUSH', order, entry) end
return 1
