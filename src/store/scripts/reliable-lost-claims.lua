-- Compare the claims of groups with all claims: surplus ones hold slots that nothing frees.
--
-- KEYS[1] inFlight  zset  priority and id -> when its visibility ends, epoch ms
-- KEYS[2] groups    hash  group -> its claims, and when they were
--
-- ARGV[1] most  integer  the most groups to examine; with more groups none is examined
--
-- returns {how many claims the groups have by their counts, how many there are at most, the group with most, its claims}; with -1 for the
--   first where nothing was looked at
local inFlight, states, most = KEYS.inFlight, KEYS.groups, tonumber(ARGV.most)
local LONGEST_GROUP, LONGEST_STATE = 255, 1200

if redis.call('HLEN', states) > most then return {-1, 0, '', 0} end
local sum, name, highest = 0, '', 0
for _, group in ipairs(redis.call('HKEYS', states)) do
  local size = redis.call('HSTRLEN', states, group)
  local text = #group <= LONGEST_GROUP and size <= LONGEST_STATE and redis.call('HGET', states, group)
  local digits = text and string.match(text, '^(%d+) ')
  local claims = digits and #digits <= 9 and tonumber(digits) or 0
  sum = sum + claims
  if claims > highest then name, highest = group, claims end
end
return {sum, redis.call('ZCARD', inFlight), name, highest}
