-- End a time in which one instance alone changed something, unless another one has begun its own.
--
-- KEYS[1] lock  string  who changes it
--
-- ARGV[1] token  text  of the instance
--
-- returns 1 when it was this instance's, else 0
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
return redis.call('DEL', KEYS[1])
