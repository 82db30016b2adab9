-- Give back a worker number, with the time up to which its ids reached.
--
-- KEYS[1] workers  hash  as in lease-worker.lua
--
-- ARGV[1] token   text     the token of the instance
-- ARGV[2] number  integer  the number that it has
-- ARGV[3] reach   integer  the time of the last id that it has drawn, epoch ms
--
-- returns 1 if the instance had it, else 0
local stored = redis.call('HGET', KEYS[1], ARGV[2])
if not stored or string.match(stored, '^%d+ (.*)$') ~= ARGV[1] then
  return 0
end
redis.call('HSET', KEYS[1], ARGV[2], ARGV[3] .. ' ')
return 1
