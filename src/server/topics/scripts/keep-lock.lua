-- Go on being the one instance that changes something, unless another one has begun.
--
-- KEYS[1] lock  string  who changes it
--
-- ARGV[1] token   text     of the instance
-- ARGV[2] lockMs  integer  for so long from now
--
-- returns 1 when it is this instance's, else 0
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
