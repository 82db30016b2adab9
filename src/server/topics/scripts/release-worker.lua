-- Give back a worker number, with the time up to which its ids reached.
--
-- KEYS[1] workers  hash  as in lease-worker.lua
--
-- ARGV[1] token   text     the token of the instance
-- ARGV[2] number  integer  the number that it has
-- ARGV[3] reach   integer  the time of the last id that it has drawn, epoch ms
--
-- returns 1 if the instance had it, else 0
local stored = redis.call('HGET', KEYS.workers, ARGV.number)
if not stored or string.match(stored, '^%d+ (.*)$') ~= ARGV.token then
  return 0
end
redis.call('HSET', KEYS.workers, ARGV.number, ARGV.reach .. ' ')
return 1
