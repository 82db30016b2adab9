package com.example.shop;

/** A class within a class. */
public class Item {
    public String sku;
    public int count;
}
