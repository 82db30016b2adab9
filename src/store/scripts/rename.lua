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
if redis.call('EXISTS', KEYS.first) + redis.call('EXISTS', KEYS.second) == 0 then return -1 end
if ARGV.replace == '0' and redis.call('EXISTS', KEYS.newFirst) + redis.call('EXISTS', KEYS.newSecond) > 0 then return 0 end
if KEYS.first == KEYS.newFirst then return 1 end

local function rename(key, newKey)
  if redis.call('EXISTS', key) == 1 then
    redis.call('RENAME', key, newKey)
  else
    redis.call('UNLINK', newKey)
  end
end
rename(KEYS.first, KEYS.newFirst)
if KEYS.second ~= KEYS.first then rename(KEYS.second, KEYS.newSecond) end
if ARGV.channel ~= '' then
  local head = redis.call('ZRANGEBYSCORE', KEYS.newFirst, 0, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  if head[2] then redis.call('PUBLISH', ARGV.channel, string.format('%.0f', math.floor(tonumber(head[2])))) end
end
return 1
