-- Read the counts of batches. Changes nothing.
--
-- KEYS[1] batches  hash  the batch of a message, the counts of a batch, its last message: see shared/batches.lua
--
-- ARGV[1..] names  text*
--
-- returns for each name its counts, or "" when there is no such batch
local LONGEST_COUNTS = 160

local reply = {}
for n, name in ipairs(ARGV) do
  local isShort = redis.call('HSTRLEN', KEYS.batches, 'b' .. name) <= LONGEST_COUNTS
  reply[n] = isShort and redis.call('HGET', KEYS.batches, 'b' .. name) or ''
end
return reply
