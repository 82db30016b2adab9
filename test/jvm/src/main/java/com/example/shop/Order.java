package com.example.shop;

import java.math.BigDecimal;
import java.util.Date;
import java.util.List;
import java.util.Map;
import java.util.UUID;

/** What a Java service might put into a queue: primitive and boxed fields, dates, bytes, nested and generic ones. */
public class Order {
    public long id;
    public Long customer;
    public String text;
    public int quantity;
    public Integer rating;
    public double price;
    public boolean paid;
    public Date created;
    public UUID token;
    public BigDecimal total;
    public byte[] data;
    public Color color;
    public Item first;
    public List<String> tags;
    public Map<String, Object> extra;
}
