-- Give the keys of one object other names, together. Existing keys of these names are deleted, or prevent it.
--
-- KEYS[1] first      any  a key of the object
-- KEYS[2] second     any  the other key; the same again if the object has one key
-- KEYS[3] newFirst   any  the new name of the first
-- KEYS[4] newSecond  any  the new name of the second
--
-- ARGV[1] replace  flag  also when one of the new names is taken
-- ARGV[2] channel  text  the channel that announces the head of the renamed schedule; empty for a list
--
-- returns 1 when renamed, 0 when a new name is taken, -1 when there is nothing to rename
if redis.call('EXISTS', KEYS[1]) + redis.call('EXISTS', KEYS[2]) == 0 then return -1 end
if ARGV[1] == '0' and redis.call('EXISTS', KEYS[3]) + redis.call('EXISTS', KEYS[4]) > 0 then return 0 end
if KEYS[1] == KEYS[3] then return 1 end

local function rename(key, newKey)
  if redis.call('EXISTS', key) == 1 then
    redis.call('RENAME', key, newKey)
  else
    redis.call('UNLINK', newKey)
  end
end
rename(KEYS[1], KEYS[3])
if KEYS[2] ~= KEYS[1] then rename(KEYS[2], KEYS[4]) end
if ARGV[2] ~= '' then
  local head = redis.call('ZRANGEBYSCORE', KEYS[3], 0, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  if head[2] then redis.call('PUBLISH', ARGV[2], string.format('%.0f', math.floor(tonumber(head[2])))) end
end
return 1
