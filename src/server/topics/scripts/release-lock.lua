-- Release the lock of an instance, unless another instance has it by now.
--
-- KEYS[1] lock  string  the token of the instance that has the lock
--
-- ARGV[1] token  text  the token of this instance
--
-- returns 1 if this instance had the lock, else 0
if redis.call('GET', KEYS.lock) ~= ARGV.token then
  return 0
end
return redis.call('DEL', KEYS.lock)
